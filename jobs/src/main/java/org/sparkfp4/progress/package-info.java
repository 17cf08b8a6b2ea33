/** How far a run is, while it runs: a line that is drawn again on a terminal, lines of the log elsewhere. */
package org.sparkfp4.progress;
