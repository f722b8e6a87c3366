"""Damage for files, and how often tests do it: BURNBOOK_MUTATIONS=100000 for more."""

import os


def mutations(usual):
    """How many damaged files a test reads: as many as asked for, or the usual few."""
    return int(os.environ.get("BURNBOOK_MUTATIONS", usual))


def mutate(data, rng):
    """Change, drop, insert, repeat or cut bytes somewhere."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        at, way = rng.randrange(len(found) + 1), rng.randrange(6)
        if way == 0 and at < len(found):
            found[at] ^= 1 << rng.randrange(8)
        elif way == 1 and at < len(found):
            found[at] = rng.choice((0, 0x80, 0x90, 0xC1, 0xC6, 0xDD, 0xDF, 0xFF, 0x7F))
        elif way == 2:
            del found[at : at + rng.randrange(1, 9)]
        elif way == 3:
            found[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif way == 4:
            found[at:at] = found[at : at + rng.randrange(1, 60)]
        else:
            del found[at:]
        found = found or bytearray(b"\0")
    return bytes(found)
