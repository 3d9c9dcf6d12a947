"""What the hint of a refused file asks for can be done."""

from remit.config.strict.yaml import MAX_NODES, parse_yaml


def test_a_catalogue_of_too_many_nodes_is_not_told_to_do_what_is_impossible() -> None:
    raw = b"capabilities: [" + b"a," * MAX_NODES + b"]"
    node, (problem,) = parse_yaml(raw, "capabilities.yaml")
    assert node is None
    assert problem.code == "too_large"
    assert "split" not in problem.hint, "a catalogue is one file"
