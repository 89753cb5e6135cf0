"""The model of tables, for those who import it from here."""

from perflab.columns import DEEPER, AnyTable, Cell, Column, Read, Row, Table, Tone

__all__ = ["DEEPER", "AnyTable", "Cell", "Column", "Read", "Row", "Table", "Tone"]
