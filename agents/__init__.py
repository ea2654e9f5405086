"""The Faust side of a worker: the app, its driver subclass, and one thin agent per command topic."""
