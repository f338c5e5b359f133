"""From a merged model to a `.litertlm` bundle."""
