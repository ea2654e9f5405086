"""The page: its documents and streams without a browser, and the whole of it in a real one."""
