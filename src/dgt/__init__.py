"""The Deformable Graph Transformer."""
