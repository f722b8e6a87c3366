"""What Burn 0.15.0 answered, call by call, beside what burnbook answers.

    python -m tests.oracle.burn            the counts, and every case that disagrees
    python -m tests.oracle.burn float/exp  only cases whose id starts like this
    python -m tests.oracle.burn FILE.json  the cases of another file

`cases` reads the file, `calls` makes each call again (with `layers` and `texts`),
`compare` says whether the results agree. A disagreement must be a row of
`burnbook.reference.differences`.
"""
