package @package@

import android.os.Bundle
import android.widget.Button
import android.widget.LinearLayout
import android.widget.ScrollView
import android.widget.TextView
import androidx.activity.ComponentActivity
import java.util.Locale
import kotlin.concurrent.thread

/** Runs the model on zeros, shows what comes out, and how long it takes. */
class BenchmarkActivity : ComponentActivity() {
    private lateinit var text: TextView
    private lateinit var button: Button

    override fun onCreate(state: Bundle?) {
        super.onCreate(state)
        text = TextView(this).apply {
            textSize = 16f
            setPadding(32, 24, 32, 24)
            text = (Model.INPUTS.map { "in: $it" } + Model.OUTPUTS.map { "out: $it" }).joinToString("\n")
        }
        button = Button(this).apply {
            setText(R.string.run)
            setOnClickListener { measure() }
        }
        setContentView(LinearLayout(this).apply {
            orientation = LinearLayout.VERTICAL
            fitsSystemWindows = true
            addView(button)
            addView(ScrollView(context).apply { addView(text) })
        })
    }

    private fun measure() {
        button.isEnabled = false
        thread(name = "benchmark") {
            val said = runCatching { measured() }.getOrElse(Throwable::toString)
            runOnUiThread {
                text.text = said
                button.isEnabled = true
            }
        }
    }

    private fun measured(): String = Model(this).use { model ->
        repeat(WARM_UP) { model.run() }
        val times = DoubleArray(RUNS) { model.run() }.sorted()
        val lines = mutableListOf(
            String.format(Locale.ROOT, "%d runs: median %.2f ms, fastest %.2f ms", RUNS, times[RUNS / 2], times[0]),
        )
        Model.OUTPUTS.forEachIndexed { index, name ->
            val first = model.numbers(index).take(SHOWN).joinToString { String.format(Locale.ROOT, "%.4g", it) }
            lines += "$name: $first"
        }
        if (Model.GIVES_SCORES) lines += model.best(threshold = -1f).map { "${it.title}: ${it.score}" }
        lines.joinToString("\n")
    }

    companion object {
        const val WARM_UP = 3
        const val RUNS = 20
        const val SHOWN = 8
    }
}
