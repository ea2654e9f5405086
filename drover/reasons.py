"""What an exception of a client says, in words for an operator, who knows Kafka's errors and not the client."""

import os
import re

_NO_BOOTSTRAP = "none of its bootstrap servers answers"


def reason_of(error: BaseException) -> str:
    """Return Kafka's name for the error if it is one of Kafka's, and what the exception says.

    An exception without words has those of its class: `RequestTimedOutError` says "request timed out".
    """
    name = getattr(type(error), "message", None)
    codes = [name] if isinstance(name, str) and name.isupper() else []
    words = [str(argument) for argument in error.args if str(argument)]
    if isinstance(error, OSError) and error.strerror:
        # asyncio puts the address, as a tuple, in the place of the system's words.
        if error.errno is not None and error.strerror.startswith("Connect call failed"):
            words = [os.strerror(error.errno)]
        else:
            words = [error.strerror]
    # The clients list their own objects behind these words; the caller names the addresses.
    words = [_NO_BOOTSTRAP if word.startswith("Unable to bootstrap from") else word for word in words]
    if codes or words:
        return ": ".join((*codes, ", ".join(words)) if words else codes)
    said = re.sub(r"(?<!^)(?=[A-Z])", " ", type(error).__name__.removesuffix("Error")).lower()
    return "no answer in time" if isinstance(error, TimeoutError) else said
