"""Versions of Burn, as numbers that can be compared."""

VERSION = "0.15.0"  # whose records, configs and behaviour are ours


def release_of(version: str) -> tuple[int, ...]:
    """A version as numbers; () when it is none.

    Example:
        >>> release_of("0.15.0"), release_of("0.22.0-pre.1"), release_of("newest")
        ((0, 15, 0), (0, 22, 0), ())
    """
    if not isinstance(version, str):  # 0.20 would be 0.2
        return ()
    parts = version.split("-")[0].split(".")
    plain = all(p.isascii() and p.isdigit() and len(p) < 9 for p in parts)
    return tuple(map(int, parts)) if plain else ()
