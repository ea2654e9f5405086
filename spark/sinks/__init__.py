"""The stores of the tables: each sink is a small class, and one contract suite tests all."""
