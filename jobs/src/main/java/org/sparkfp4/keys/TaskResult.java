package org.sparkfp4.keys;

import java.io.Serializable;

/**
 * What a task tells the driver. What is wrong with the keys travels so, and not as an exception, since Spark would run
 * a failed task again.
 *
 * @param refusal why the keys can never be cached; null: the file is written
 */
record TaskResult(String refusal) implements Serializable {}
