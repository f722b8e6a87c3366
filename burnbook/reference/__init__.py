"""Documentation made from declarations: tables, stubs, pages."""
