"""The vocabulary of Drover and nothing else: commands, events, the log's records, their codec and the topic names.

Needs msgspec and the standard library only, so that any client or a Spark executor can use this one package.
"""
