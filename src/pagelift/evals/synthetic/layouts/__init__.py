"""How documents look: families of layouts by kind; the families of a split occur in no other."""
