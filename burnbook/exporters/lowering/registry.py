"""Which op becomes which kernels: one function for each form.

A form is called with the lowering and the step; attributes come by keyword.
"""

from burnbook.exporters.forms import Forms, NoForm as NoForm

FORMS = Forms()
form = FORMS.declare
