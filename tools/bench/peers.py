"""Two engines that others wrote, given the same grants as flat policies."""

from collections.abc import Callable, Iterable

from remit.model.grant import Grant

Check = Callable[[str, str], bool]


def cedar_check(grants: Iterable[Grant]) -> Check:
    """Ask cedarpy; one policy for each profile, which lists its events.

    Raises:
        ImportError: cedarpy is not installed.
    """
    import cedarpy  # noqa: PLC0415 - a peer that may be missing

    # Parsed once, as its own documentation advises.
    policies = cedarpy.PolicySet.from_str("\n".join(_cedar_policy(grant) for grant in grants))
    entities = cedarpy.Entities.from_json_str("[]")

    def check(profile: str, event: str) -> bool:
        request = {
            "principal": f'Profile::"{profile}"',
            "action": f'Action::"{event}"',
            "resource": 'Daemon::"remit"',
            "context": {},
        }
        return bool(cedarpy.is_authorized(request, policies, entities).allowed)

    return check


def _cedar_policy(grant: Grant) -> str:
    actions = ", ".join(f'Action::"{event}"' for event in sorted(grant.events))
    return f'permit(principal == Profile::"{grant.profile}", action in [{actions}], resource);'


_CASBIN_MODEL = """
[request_definition]
r = sub, act
[policy_definition]
p = sub, act
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = r.sub == p.sub && r.act == p.act
"""


def casbin_check(grants: Iterable[Grant]) -> Check:
    """Ask casbin's FastEnforcer; one policy for each profile and event, looked up by both.

    Raises:
        ImportError: casbin is not installed.
    """
    import casbin  # noqa: PLC0415 - a peer that may be missing
    from casbin.model.model_fast import FastModel  # noqa: PLC0415

    model = FastModel([0, 1])
    model.load_model_from_text(_CASBIN_MODEL)
    enforcer = casbin.FastEnforcer(model, cache_key_order=[0, 1])
    enforcer.add_policies([[g.profile, event] for g in grants for event in sorted(g.events)])

    def check(profile: str, event: str) -> bool:
        return bool(enforcer.enforce(profile, event))

    return check
