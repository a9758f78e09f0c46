"""Line and branch coverage of each part by its own tests alone."""
