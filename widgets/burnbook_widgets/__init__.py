"""Building blocks · Learner. The moving pictures: what burnbook shows in a notebook."""

from burnbook_widgets.chart import Chart
from burnbook_widgets.dashboard import Dashboard, NotebookRenderer
from burnbook_widgets.history import history_figure

__all__ = ["Chart", "Dashboard", "NotebookRenderer", "history_figure"]
