"""A real cluster with TLS, passwords and ACLs: the worker and the command line on it, and every ACL taken away once."""
