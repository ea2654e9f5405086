"""Where the tables are kept: each sink is a small class, and one suite of tests holds for all."""
