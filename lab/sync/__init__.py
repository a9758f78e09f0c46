"""The synchronous client under load, under Ctrl-C, and beside the asynchronous one."""
