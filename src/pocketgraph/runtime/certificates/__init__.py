"""Certificates of compiled parts: each is compared with the reference engine before it is trusted."""
