"""One chart model drawn as SVG, by plotly or by matplotlib."""
