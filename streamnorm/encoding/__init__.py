"""The way back in no provider's words: tools, turns and events in, what every encoder shares out.

Rule: nothing here spells a word of a wire; a provider's folder says the words.
"""
