"""daVinci-kernel: teach language models to write fast GPU kernels, and prove that the kernels are right and fast."""

__version__ = "0.1.0"
