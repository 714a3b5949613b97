int x_placeholder;
