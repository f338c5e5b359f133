"""What every stage needs: recipes, files and hashes, models."""
