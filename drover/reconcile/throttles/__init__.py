"""The throttle ledger: what Drover has put on brokers and topics, and what it found there before."""
