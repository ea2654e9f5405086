"""What the tables are: their schemas, and how rows of the log become rows of them."""
