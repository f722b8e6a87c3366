"""Names of a file as a page may show them."""

from __future__ import annotations


def safe(text: object, most: int = 80) -> str:
    """At most so many letters of a foreign text, none of them unseen.

    Why: letters that turn the order of others, or end a line, would change what stands
    around a name.

    Example:
        >>> safe("conv.weight"), safe("a\\u202eb"), safe("x" * 99, 5)
        ('conv.weight', 'a\\\\u202eb', 'xxxx…')
    """
    plain = str(text)[: most + 1]
    if not plain.isprintable():
        plain = "".join(
            letter if letter.isprintable() else ascii(letter)[1:-1] for letter in plain
        )
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"


def ended(text: str, most: int = 120) -> str:
    """As `safe`, but of a long path the end, which says the most."""
    if len(text) <= most:
        return safe(text, most * 6)
    return f"…{safe(text[1 - most :], most * 6)}"
