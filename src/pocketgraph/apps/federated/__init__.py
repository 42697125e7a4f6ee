"""Federated averaging on Flower: clients train one graph on data that stay with them, a server averages them."""
