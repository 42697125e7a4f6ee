"""The parts that all pages and notebook tables are made of: one look, and no request to anywhere."""
