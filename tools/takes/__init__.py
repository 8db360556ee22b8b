"""The bundled takes, written by hand as small tables: one module per wire."""
