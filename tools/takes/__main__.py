"""`python -m tools.takes` writes every take below recordings/."""

from tools.takes.write import main

if __name__ == "__main__":
    main()
