package org.sparkfp4.progress;

import java.io.PrintStream;

/** One line of a terminal. The cursor waits at its beginning, so that a message of the log writes over it. */
final class TerminalLine implements ProgressView {
  private final PrintStream terminal;
  private boolean drawn;

  TerminalLine(PrintStream terminal) {
    this.terminal = terminal;
  }

  @Override
  public void show(Progress progress) {
    draw(progress.text());
  }

  @Override
  public void close() {
    if (drawn) {
      draw("");
    }
  }

  private void draw(String text) {
    terminal.print(text + Terminal.CLEAR_TO_END + "\r");
    terminal.flush();
    drawn = true;
  }
}
