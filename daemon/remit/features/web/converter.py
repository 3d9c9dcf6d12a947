"""A program of its own: HTML on standard input, Markdown or plain text on standard output.

It reads foreign HTML with native code that keeps the interpreter to itself, so it runs in a process
that holds nothing of the daemon's, can be stopped, and cannot take more than it is given. It is
started by its path and imports nothing of remit.
"""

import resource
import sys

CPU_SECONDS = 8
MEMORY_BYTES = 3 << 28
DEPTH = 512
"""How deep elements are followed; no page that somebody reads is nested deeper."""


def main(wanted: str, limit: int, base_url: str) -> None:
    """Convert what comes in; at most `limit` bytes come out."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    from html_to_markdown import ConversionOptions, convert  # noqa: PLC0415 - under the limits

    options = ConversionOptions(
        output_format="plain" if wanted == "text" else "markdown",
        extract_metadata=False,
        inline_data_media="alt_text_only",
        max_depth=DEPTH,
        base_url=base_url or None,
    )
    html = sys.stdin.buffer.read().decode("utf-8", "replace").replace("\0", "\ufffd")
    content = convert(html, options).content or ""
    sys.stdout.buffer.write(content.encode("utf-8", "replace")[:limit])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
