"""What may start, and when: the queue, the order, the limits."""
