"""Guards removed one by one: does a test notice? See ``__main__``."""
