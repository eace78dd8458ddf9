"""``python -m simdup`` is the command."""

from simdup.cli import main

if __name__ == "__main__":
    main()
