"""``python -m viewlet`` is the command ``viewlet``: for environments whose ``bin`` is not on the path."""

from viewlet.cli.main import app

if __name__ == "__main__":
    app(prog_name="python -m viewlet")
