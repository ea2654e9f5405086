"""What a command leads to: command, state and facts make events, or a refusal."""
