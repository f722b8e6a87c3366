"""Which op is written how: one function for each form.

A form is called with the writer, the step, and the names of its inputs ("" for one
that is left out); attributes come by keyword. It adds nodes and gives the name of the
result, a tuple of names, or a function that joins the result where it is wanted whole.
"""

from burnbook.exporters.forms import Forms, NoForm as NoForm

FORMS = Forms()
form = FORMS.declare
