"""Engines that run compiled parts, behind one interface: LiteRT, the reference engine, extras, and a user's own."""
