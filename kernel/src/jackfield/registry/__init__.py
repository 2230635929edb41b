"""The frozen registry at run time: arguments judged, handlers invoked."""
