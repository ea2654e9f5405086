"""Tables that capabilities bring."""
