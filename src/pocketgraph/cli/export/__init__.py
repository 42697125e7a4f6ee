"""Commands that write what a device needs."""
