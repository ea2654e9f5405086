"""The throttle ledger: the values that Drover has set on brokers and topics, and those from before."""
