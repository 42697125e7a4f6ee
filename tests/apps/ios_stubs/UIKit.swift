// Signatures after Apple's documentation: who may call what from which thread is what counts.
@_exported import CoreGraphics
@_exported import Foundation
open class CALayer: NSObject {}
open class UIResponder: NSObject {}
@MainActor open class UIView: NSObject {
    open class var layerClass: AnyClass { CALayer.self }
    public let layer = CALayer()
    nonisolated public override init() {}
}
open class UIImage: NSObject, @unchecked Sendable {
    public let cgImage: CGImage?
    open var size: CGSize { CGSize(width: cgImage?.width ?? 0, height: cgImage?.height ?? 0) }
    public init(cgImage: CGImage) { self.cgImage = cgImage }
    public init?(data: Data) { return nil }
    open func draw(in rect: CGRect) {}
}
open class UIGraphicsRendererContext: NSObject {}
open class UIGraphicsImageRendererContext: UIGraphicsRendererContext {}
open class UIGraphicsRendererFormat: NSObject {}
open class UIGraphicsImageRendererFormat: UIGraphicsRendererFormat { open var scale: CGFloat = 1; open var opaque = false }
open class UIGraphicsImageRenderer: NSObject {
    public init(size: CGSize, format: UIGraphicsImageRendererFormat) {}
    open func image(actions: (UIGraphicsImageRendererContext) -> Void) -> UIImage { fatalError() }
}
