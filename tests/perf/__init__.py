"""Speed, as ratios to the article's algorithm in the same run."""
