"""Whether a model fits a device: latency, frames a second and memory on phones, boards, microcontrollers, browsers."""
