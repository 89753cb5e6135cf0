"""Tables, each declared once; perflab.report.table, run_page.elements, latex and perflab.export render them."""
